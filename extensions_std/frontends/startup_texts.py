"""What is told when a command cannot be followed for want of a model or a prompt."""

from typing import Final

UNCONFIGURED: Final = """\
No model is configured. Either set the key of a known provider, for example

    export ANTHROPIC_API_KEY=...

(or one of {variables}; camshaft --list-models then lists its models), or describe a server that \
speaks chat completions in {path}:

    {{
      "providers": {{
        "local": {{
          "baseUrl": "http://127.0.0.1:8080/v1",
          "api": "openai-completions",
          "models": [{{ "id": "my-model", "contextWindow": 32768 }}]
        }}
      }}
    }}

camshaft --demo works without any of this."""

NOT_INTERACTIVE: Final = (
    'There is no interactive mode; give a prompt, for example: camshaft "What does this project do?" (--help tells more)'
)
