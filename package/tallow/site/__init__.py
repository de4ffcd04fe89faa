"""Build the site of the pages, and serve it on this computer.

build                                       the folder: pages, Python's files, and what they are made of
browser_wheel, parts, snapshot, bytecode    tallow and Python as pages load them; start_modules.txt lists what is first
joined_modules, page_heads                  JavaScript of a worker in one file; heads of pages
shared_module, pyodide_packages             Pyodide's module with a shared memory; packages for the console
template_engine                             Jinja for chat templates
static_server, byte_range, content_encoding the server of `tallow demo`
offers                                      models of a folder for the pages
cache, node                                 built files that are kept; scripts in Node
"""
