"""Statements to databases."""
