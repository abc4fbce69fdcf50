"""The command `sky`: what is typed, and what it prints."""
