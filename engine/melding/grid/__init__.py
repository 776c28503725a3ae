"""The cross layout: tiles in the cells of a grid, where each row of neighbors is a run and each column a group."""
