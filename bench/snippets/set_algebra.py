admins = {"ann", "bo", "cy"}
writers = {"bo", "dee"}
readers = {"ann", "bo", "cy", "dee", "ed"}
{"both": sorted(admins & writers), "only": sorted(readers - admins - writers), "x": sorted(admins ^ writers), "sub": writers <= readers}
