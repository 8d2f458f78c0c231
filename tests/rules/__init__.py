"""Tests of the rule language: reading, engines, proofs, queries."""
