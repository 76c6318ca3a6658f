"""One module for each scenario: what it does, its arguments, and run()."""
