"""What users write and read: the typed form of `gpupod.dev/v1alpha1`. Pure data; the schema in `crds/` is the law."""
