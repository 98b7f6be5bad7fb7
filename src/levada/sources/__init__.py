"""World -> references and bytes. The driver finds and cuts (``files``), the tasks read (``read``);
no row crosses between.
"""
