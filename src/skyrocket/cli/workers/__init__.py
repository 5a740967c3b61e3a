"""What `skyrocket worker` does: finds the application, runs it in one process, keeps several, starts it anew."""
