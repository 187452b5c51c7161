"""What of the Arrow engine is written in C: decoding the pages of Parquet files."""
