"""Tests of operators of one namespace."""
