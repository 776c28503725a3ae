"""The store on Redis: alone, behind Sentinels, or as a cluster."""
