"""Everything pure about cells: producing, uploading, verifying, and what the end of a pod means for them."""
