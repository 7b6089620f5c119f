"""Files that a conversation is given besides its prompts: skills, prompt templates, context files, system prompts."""
