"""Several broker processes under one parent, so that one machine uses its cores: planned, watched, started again."""
