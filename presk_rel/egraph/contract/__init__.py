"""Contractions in the order that costs least: what the e-graph knows, read as sums of products (`products`), put in
order at the bound dimensions (`order`), and written as choices of the extraction with their proof (`write`).

Associativity of contractions as rewrite rules would make every order of every part a class. So this runs once, after
saturation, as `egraph.placement` does, and from each contraction down to at most five factors.
"""
