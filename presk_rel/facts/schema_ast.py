"""The relations about source programs: `rules/scopes.dl`, `rules/unused.dl` and `rules/calls.dl`."""

from __future__ import annotations

from presk_rel.facts.schema_row import RelationRow, row


def _input(signature: str, meaning: str) -> RelationRow:
    return row(signature, meaning, "input", "ast")


def _derived(signature: str, meaning: str) -> RelationRow:
    return row(signature, meaning, "derived", "ast")


AST_ROWS: tuple[RelationRow, ...] = (
    # scopes.dl: inputs
    _input("parent(scope outer)", "{scope} lies directly in {outer}"),
    _input("jump(scope outer region)", "from {scope} a search may go on at {outer} if {region} declares no such name"),
    _input("in_region(scope region)", "{scope} is part of the stretch {region}"),
    _input("declares(scope name decl ordinal#)", "{decl} is declaration number {ordinal} of {name} in {scope}"),
    _input("kind(decl kind)", "{decl} declares a {kind}"),
    _input("ref(use scope name)", "{name} is used at {use}, in {scope}"),
    _input("optional(use)", "{use} may be a word of a configuration block"),
    _input("qualified(use head name)", "{use} is the member {name} of what {head} means"),
    _input("alias(decl scope)", "the import {decl} stands for {scope}"),
    _input("dim_position(use function offset#)", "{use} is a dimension in the signature of {function}"),
    _input("within(scope function)", "{scope} is part of {function}"),
    _input("component(decl index# use)", "module number {index} of the instance {decl} is named at {use}"),
    _input("similar(name candidate)", "{candidate} is one slip away from {name}"),
    # scopes.dl: derived
    _derived("declares_name(scope name)", "{scope} declares {name}"),
    _derived("region_declares(region name)", "some scope of the stretch {region} declares {name}"),
    _derived("has_jump(scope)", "searches may jump from {scope}"),
    _derived("declared(name)", "some scope declares {name}"),
    _derived("repeated(name)", "{name} is declared in more than one scope"),
    _derived("lookup(scope name)", "{scope} is searched for {name}"),
    _derived("outward(scope name outer)", "{name} is not in {scope}, so the search goes on in {outer}"),
    _derived("visible(scope name decl)", "{name} means {decl} in {scope}"),
    _derived("found(use)", "the name at {use} is visible there"),
    _derived(
        "undeclared_dim(function name offset# use)",
        "{name}, at {use}, is undeclared and a dimension in the signature of {function}",
    ),
    _derived("needs_dim(function name)", "a dimension in the signature of {function} is the undeclared {name}"),
    _derived(
        "implicit_dim(function name first_use)", "{name} is an implicit dimension of {function}, from {first_use}"
    ),
    _derived("exported(kind)", "a {kind} can be named through an import"),
    _derived("resolves(use decl)", "the name at {use} means {decl}"),
    _derived("provides(decl module)", "the instance {decl} runs functions of {module}"),
    _derived("holder(decl)", "{decl} is another name of a module instance"),
    _derived("composite(decl)", "{decl} composes several modules"),
    _derived("selects(use function)", "{use} selects {function} of an instance"),
    _derived("resolved(use)", "the name at {use} means something"),
    _derived("means_import(use)", "{use} means an import"),
    _derived("unresolved(use name)", "nothing called {name} is declared for {use}"),
    _derived("near_miss(use name candidate)", "{name}, at {use}, means nothing, but {candidate} would"),
    _derived("duplicate(decl earlier)", "{decl} repeats the name of {earlier} in one scope"),
    _derived("shadows(decl outer)", "{decl} hides {outer}"),
    _input("position(name file line# column#)", "{name} stands at {file}:{line}:{column}"),
    # unused.dl
    _input("watched(decl what)", "{decl}, a {what}, is there to be used"),
    _input("picked(name)", "a member called {name} is picked out of a value"),
    _derived("used(decl)", "something uses {decl}"),
    _derived("unused(decl what)", "nothing uses {decl}, a {what}"),
    # calls.dl: inputs
    _input("mention(decl index# use)", "mention number {index} of {decl} is at {use}"),
    _input("extent(decl mentions#)", "{decl} has {mentions} mentions"),
    _input("joint(decl calling)", "{decl} composes several modules, or is a model; {calling} is a call of its apply"),
    # calls.dl: derived
    _derived("same(decl other)", "{decl} is directly another name of the instance {other}"),
    _derived("joint_named(decl calling)", "{decl} names a composition or a model, a call of whose apply is {calling}"),
    _derived("is_joint(decl)", "the instance {decl} composes several modules, or is a model"),
    _derived("includes(decl)", "{decl} is a module or a model"),
    _derived("leads(decl index# target)", "by its mention number {index}, {decl} needs {target}"),
    _derived("span(decl mentions#)", "the mentions of {decl} are numbered up to {mentions}"),
    _derived("stop(decl index#)", "mention number {index} of {decl} leads somewhere"),
    _derived("leading(decl)", "{decl} needs another declaration"),
    _derived("before(decl index# last#)", "before mention {index} of {decl}, the last that leads somewhere is {last}"),
    _derived("done(decl index#)", "what {decl} needs up to mention {index} comes to an end"),
    _derived("founded(decl)", "what {decl} needs comes to an end"),
    _derived("unfounded(decl)", "what {decl} needs never ends"),
    _derived("endless(decl index# target)", "mention {index} of {decl}, of {target}, is its first that never ends"),
    _derived("leap(decl doublings# target)", "2^{doublings} endless mentions lead from {decl} to {target}"),
    _derived("recursive(decl)", "{decl} is on a cycle of mentions"),
)
