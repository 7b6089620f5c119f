"""Extensions that ask; copied into the place of a test."""

CONFIRM = """
def setup(api):
    async def gate(event, ctx):
        if not await ctx.ui.confirm("Run it?", event.tool_name):
            return {"block": True, "reason": "refused by a person"}

    api.on("tool_call", gate)
"""

ASKING = """
def setup(api):
    async def ask(args, ctx):
        print("noise on standard output")
        chosen = await ctx.ui.select("Which?", ["red", "never blue"])
        typed = await ctx.ui.input("Name?", "a name")
        ctx.ui.notify(f"got {chosen} and {typed}")

    api.register_command("ask", ask, description="Asks two things")
"""

FRESH = """
def setup(api):
    async def fresh(args, ctx):
        await ctx.new_session()

    api.register_command("fresh", fresh, description="Goes on in a new session")
"""
