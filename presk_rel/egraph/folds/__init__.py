"""Folds made smaller before the e-graph: operands and parts that nothing reads, parts that are equal or never change,
and what a body computes anew in every iteration although it could not differ. `laws` names the reasons, `views` sees
values as their parts, `plan` decides, `write` writes."""
