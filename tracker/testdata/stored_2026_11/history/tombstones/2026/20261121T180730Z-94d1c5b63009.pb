
20261121T180730Z-94d1c5b63009ЛцШаб╢ИїJthe newest 1 runs and those of 0 days whole; of the others all, as medians"!
20261121T180627Z-9c150d3199f9е╡Цc>