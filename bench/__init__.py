"""Speed and memory, as ratios against peers on the same work in the same run: `make bench`."""
