"""What the engine is to Python alone: values of libraries out and in, asyncio, notebooks."""
