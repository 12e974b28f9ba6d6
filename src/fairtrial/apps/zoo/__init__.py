"""The zoo: every family of an installed library, built small and audited, one row each."""
