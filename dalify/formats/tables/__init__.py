"""Reads tables: Parquet and Arrow."""
