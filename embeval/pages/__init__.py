"""HTML pages in one file each: nothing is fetched, nothing runs, and texts from data stay texts.

``page.render`` fills a template; ``intervals.svg`` draws intervals. Reports of any level are made of these.
"""
