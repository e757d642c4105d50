"""The operators as their formulas read, in float64, token by token. Right before fast: what other backends are held
against."""
