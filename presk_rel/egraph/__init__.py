"""The optimizer: equality saturation with proofs. `optimize.optimize` is the way in.

language, op_types, codes      Core ↔ terms ↔ constructors of the e-graph
rules/, rule, patterns,        rewrite rules as data, and what their texts mean
  conditions, instances
egglog_rules, egglog_stages,   the e-graph engine: the only files that know egglog
  egglog_dialect
templates, commute, sums       equalities found before the e-graph: operands read for their type, orders of sums
saturate, snapshot             running within limits, reading back
placement                      constant factors put where they cost nothing, after saturation
closure, prove, proof          congruence closure with dated edges → lemmas → the proof as data
cost, choices, extract,        what programs cost, and the cheapest one
  extract_parts, extract_solver, cp_sat
parts, ways                    the entry and the bodies of folds, which share one e-graph
decode                         terms → Core
render_proof, term_text        a proof as text and JSON
folds/                         folds made smaller before the e-graph
checker, checker_ends, denote  the independent checker, which shares none of the above but `proof` and `rule`
"""
