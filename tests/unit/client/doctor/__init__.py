"""The checks of the doctor, on facts."""
