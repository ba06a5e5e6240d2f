"""The operators of MediaPipe, by subject; ``dalify.mediapipe.fn`` gathers them."""
