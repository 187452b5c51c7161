"""Nodes that are computed: how a scope sees what factories give as paths among others."""
