
20261121T180730Z-d334f8a40d80¾Š€ø ¶ˆõ*	matmul/.*2N
(1e9a76be61774ab89105a051e6d86a2acf116cc1master €€ËŽ™¶ˆõ*second, slower:new compiler¥4s}