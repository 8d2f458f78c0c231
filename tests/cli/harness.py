"""Runs `presk` in this process, as a user would: arguments in, exit status, stdout and stderr out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
from click.testing import CliRunner

from presk_rel.cli.app import group

EXAMPLES = Path(__file__).parents[2] / "examples"
MLP = str(EXAMPLES / "mlp.psk")
HINGE = str(EXAMPLES / "tour" / "hinge.psk")


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def presk(*args: str) -> Ran:
    result = CliRunner().invoke(group, list(args), prog_name="presk")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


@cache
def schema(command: str) -> Any:
    return json.loads(resources.files("presk_rel.cli").joinpath("schemas", f"{command}.json").read_text("utf-8"))


def presk_json(command: str, *args: str) -> Ran:
    """Runs with `--json` and validates the one document against the command's schema."""
    ran = presk(command, *args, "--json")
    jsonschema.validate(ran.document, schema(command), cls=jsonschema.Draft202012Validator)
    return ran
