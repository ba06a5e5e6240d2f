"""Reads records: TFRecord, RecordIO, LMDB, tar and WebDataset."""
