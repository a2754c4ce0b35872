
20261121T180730Z-90af82f10ac9îŒÉØ ¶ˆõ*add/.*2N
(1e9a76be61774ab89105a051e6d86a2acf116cc1master €€ËŽ™¶ˆõ*second, slower:known¥{­=