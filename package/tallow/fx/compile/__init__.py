"""The parts of `tl.compile`: the recorder of calls, guards, passes over the graph, and the plan that repeats it."""
