"""What a sandboxed call may be given beside the standard library; see pyplaypen.projectors."""
