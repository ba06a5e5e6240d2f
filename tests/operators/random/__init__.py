"""Tests of one namespace of operators."""
