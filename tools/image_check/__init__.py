"""The check of the container image without a container engine (`make image-check`)."""
