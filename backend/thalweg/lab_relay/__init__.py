"""The lab's slow network: a TCP relay before the demo's destination, which delays what it passes on."""
