"""The OpLog: a pond's rows in a Delta table, partitioned by directory. Begin with `persistence`."""
