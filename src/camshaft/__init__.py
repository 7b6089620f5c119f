"""camshaft: an event-sourced, actor-based agent kernel on Trio."""
