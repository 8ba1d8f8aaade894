"""Risk control: policies, lists, scores, claims held for review, and the log of verdicts (docs/risk.md)."""
