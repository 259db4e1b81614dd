"""A gate's report as a text: JSON and JUnit XML for machines, Markdown and HTML for people.

One module and one function per form, from a ``GateReport`` alone; nothing is read or written here.
"""
