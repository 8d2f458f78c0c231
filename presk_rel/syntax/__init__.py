"""Text ↔ tree: lexer, layout, grammar, parser, printer. `parse(print_file(t)).file == t`."""
