// Shows inference: loads the weights that mnist.c saved, and prints the predicted digits of the
// first 20 test images.
// Run it in this folder: make && ./mnist && ./predict
#include <choir/choir.h>

#include <stdio.h>

int main(void)
{
	choir_strategy *s = choir_default_strategy(); // one replica; used outside of all scopes
	choir_layer *hidden = choir_dense_new("hidden", 784, 128, CHOIR_RELU);
	choir_layer *digits = choir_dense_new("digits", 128, 10, CHOIR_LINEAR);
	CHOIR_CHECK(choir_strategy_restore(s, "mnist.safetensors"));

	choir_dataset *d = choir_idx_dataset_new("data/mnist-10k-images-idx3-ubyte.gz", "image");
	d = choir_dataset_flatten(choir_dataset_to_float(d, "image", 1 / 255.0), "image");
	d = choir_dataset_batch(choir_dataset_take(choir_dataset_skip(d, 8000), 20), 1);
	choir_distributed_dataset *images = choir_strategy_distribute_dataset(s, d, NULL);

	choir_values *image = NULL;
	choir_status status;
	while ((status = choir_distributed_dataset_next(images, &image)) == CHOIR_OK) {
		choir_tensor *x = choir_value_local(choir_values_find(image, "image"), 0);
		choir_tensor *scores = choir_layer_apply(digits, choir_layer_apply(hidden, x));
		printf("%.0f ", choir_tensor_number(choir_argmax(scores, -1)));
	}
	printf("\n");
	choir_values_free(image);
	CHOIR_CHECK(status == CHOIR_END ? CHOIR_OK : status);
	return 0;
}
