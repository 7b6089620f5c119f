"""The names the tools use of the public face."""

from camshaft.actors.ports.files import Files, FolderEntry, PrivateFile, WalkedPath
from camshaft.actors.ports.processes import ProcessCommand, ProcessEnd, Processes
from camshaft.kernel.codec import encode
from camshaft.kernel.messages import ImageBlock, TextBlock
from camshaft.kernel.persistent import FrozenDict, Json, freeze
from camshaft.kernel.tools import Annotations, OnUpdate, Signal, ToolDefinition, ToolResult
from camshaft.kernel.truncate import (
    LINES_MAX,
    OUTPUT_BYTES_MAX,
    Truncation,
    size_of,
    size_text,
    truncate_head,
    truncate_line,
    truncate_tail,
)

__all__ = [
    "LINES_MAX",
    "OUTPUT_BYTES_MAX",
    "Annotations",
    "Files",
    "FolderEntry",
    "FrozenDict",
    "ImageBlock",
    "Json",
    "OnUpdate",
    "PrivateFile",
    "ProcessCommand",
    "ProcessEnd",
    "Processes",
    "Signal",
    "TextBlock",
    "ToolDefinition",
    "ToolResult",
    "Truncation",
    "WalkedPath",
    "encode",
    "freeze",
    "size_of",
    "size_text",
    "truncate_head",
    "truncate_line",
    "truncate_tail",
]
