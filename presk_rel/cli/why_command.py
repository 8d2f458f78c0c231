"""`presk why`."""

from __future__ import annotations

import click

from presk_rel.cli.common import Outcome, Report, common_options, naturals, required, session, source_path


@click.command("why", epilog="Example:  presk why examples/tour/hinge.psk hinge --param w")
@common_options
@click.argument("function")
@click.option("--param", metavar="P", help="One parameter.  [default: every parameter above C∞]")
@click.option("--effect", metavar="E", help="Why the function has this effect.")
@click.option(
    "--not", "absent", is_flag=True, help="Why it does not: the rules that could say so, and what fails in each."
)
@click.option("--all", "everything", is_flag=True, help="Every parameter, whatever its class, and every effect.")
def command(
    file: str,
    function: str,
    consts: tuple[str, ...],
    engine: str,
    as_json: bool,
    debug: bool,
    param: str | None,
    effect: str | None,
    absent: bool,
    everything: bool,
) -> None:
    """Explain a regularity class or an effect: a proof tree of least height, down to facts of the source."""
    report = Report("why", as_json, debug)

    def body() -> Outcome:
        from presk_rel.rules.why import Question, explain
        from presk_rel.rules.why_json import explanations_json
        from presk_rel.rules.why_text import explanations_text

        program = session(report, source_path(file), naturals(consts, "--const"), engine)
        question = Question(program.named(required(function)), param and required(param), effect, absent, everything)
        analysis = program.analysis
        explanations = explain(analysis, question)
        document = explanations_json(explanations, analysis.spans)
        return Outcome(document, explanations_text(explanations, analysis, question))

    report.execute(body)
