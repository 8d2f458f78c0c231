"""The relations about PSK-Core: `rules/effects.dl`, `rules/regularity.dl`, `rules/keys.dl`,
`rules/liveness.dl`, the end of
`rules/calls.dl`."""

from __future__ import annotations

from presk_rel.facts.schema_row import RelationRow, row


def _input(signature: str, meaning: str) -> RelationRow:
    return row(signature, meaning, "input", "core")


def _derived(signature: str, meaning: str) -> RelationRow:
    return row(signature, meaning, "derived", "core")


CORE_ROWS: tuple[RelationRow, ...] = (
    _input("place(name file line# column#)", "{name} comes from {file}:{line}:{column}"),
    # calls.dl
    _derived("names_function(site fn callee)", "{fn} names {callee} at {site}"),
    _derived("calls(fn callee)", "{fn} calls {callee}"),
    # effects.dl
    _input("performs(site fn prim effect)", "{prim}, at {site}, has the effect {effect}"),
    _input("declared_effect(fn effect)", "{fn} declares the effect {effect}"),
    row("effect_clause(decl use)", "{use} stands in the uses clause of {decl}", "input", "ast"),
    _derived("effect(fn effect)", "{fn} has the effect {effect}"),
    _derived("effect_site(fn effect site)", "what {fn} does at {site} has the effect {effect}"),
    _derived("undeclared_effect(fn effect)", "{fn} has the effect {effect} without declaring it"),
    # regularity.dl: inputs
    _input("core_function(fn)", "{fn} is a function of PSK-Core"),
    _input("parameter(fn index# name)", "parameter {index} of {fn} is {name}"),
    _input("formal(fn index# leaf variable)", "{variable} is parameter {index} of {fn}"),
    _input("result(fn leaf variable)", "{fn} returns {variable}"),
    _input("flows(source target site prim operand#)", "{target} is {prim} of {source}"),
    _input("prim_class(prim operand# class)", "{prim} is {class} in operand {operand}"),
    _input("call(site fn callee)", "{fn} calls {callee} at {site}"),
    _input("closure(site fn callee)", "{site} is a function value of {callee}"),
    _input("captures(site many#)", "{site} has its first {many} arguments given"),
    _input("gradient(site fn of)", "{site} is the gradient of {of}"),
    _input("apply(site fn function)", "{function} is applied at {site}"),
    _input("given(site index# leaf variable)", "{variable} is argument {index} at {site}"),
    _input("outcome(site leaf variable)", "{variable} is the value of {site}"),
    _input("carries(source target site)", "the fold may give {target} the value of {source} as it is"),
    # regularity.dl: derived
    _derived("join(a b class)", "the worse of {a} and {b} is {class}"),
    _derived("above(class below)", "{class} is worse than {below}"),
    _derived("derivative(class of_gradient)", "the gradient of what is {class} is {of_gradient}"),
    _derived("holds(variable closure mode)", "{variable} may be the function value {closure} ({mode})"),
    _derived("local(variable closure)", "{variable} is the function value {closure} of the same function"),
    _derived("is_local(variable)", "{variable} is a function value of the same function"),
    _derived("is_held(variable)", "{variable} may be a known function value"),
    _derived("runs(site closure callee offset# mode)", "{site} may run {callee} ({mode})"),
    _derived("passes(variable formal site)", "{variable} is passed for {formal} at {site}"),
    _derived("returns(site result variable)", "{result} becomes {variable} at {site}"),
    _derived("decides(variable formal site mode)", "at {site}, {variable} stands for {formal} ({mode})"),
    _derived("edge(source target class site)", "{target} is {class} in {source}, at {site}"),
    _derived("path(formal target class)", "a path from {formal} to {target} is {class}"),
    _derived("summary(formal result class)", "{result}, which is returned, is {class} in {formal}"),
    _derived("some_path(fn param class)", "a path from {param} to the result of {fn} is {class}"),
    _derived("worse_path(fn param class)", "a path from {param} to the result of {fn} is worse than {class}"),
    _derived("depends(fn param)", "the result of {fn} depends on {param}"),
    _derived("regularity(fn param class)", "{fn} is {class} in {param}"),
    _derived("taken_by(site callee formal mode)", "{site} is the gradient of {callee} by {formal} ({mode})"),
    _derived("grad_illegal(site callee formal)", "{site} is the gradient of {callee}, which is Disc in {formal}"),
    # keys.dl
    _input("is_key(variable)", "{variable} is a key"),
    _input("draws_from(site key prim)", "{prim}, at {site}, draws from {key}"),
    _input("shared_from(site index#)", "the iterations of the fold {site} share its arguments from number {index} on"),
    _derived("structural(prim)", "{prim} only puts values together or takes them apart"),
    _derived("key_root(variable)", "{variable} is the first name of a key"),
    _derived("hands_on(source target)", "{target} is the key {source}"),
    _derived("same_key(variable root)", "{variable} is the key {root}"),
    _derived("handed(variable)", "{variable} is a key that has another name"),
    _derived("draws(site key by)", "{by} draws from {key} at {site}"),
    _derived("spends(formal)", "the function of {formal} draws from it"),
    _derived("drawn(root site by)", "{by} draws from the key {root} at {site}"),
    _derived("reused(root)", "the key {root} is drawn from more than once"),
    _derived("one_key(site key formal)", "every iteration of the fold {site} draws from {key}, its {formal}"),
    # liveness.dl
    _input("bound(fn index# var)", "binding {index} of {fn} is {var}"),
    _input("reads(fn index# var operand)", "binding {index} of {fn}, {var}, reads {operand}"),
    _input("returned(fn var)", "{fn} returns {var}"),
    _derived("live(fn var)", "the result of {fn} needs {var}"),
    _derived("dead(fn var)", "the result of {fn} does not need {var}"),
    _derived("is_read(fn var)", "a binding of {fn} reads {var}"),
    _derived("last_use(fn var index#)", "binding {index} of {fn} is the last to read {var}"),
)
