"""The lab's slow network: a TCP relay before the demo's destination. It delays what it passes on while the lab wants it."""
