"""Millpond: a query-native, versioned filesystem on Delta Lake."""
