/** Settings that show something, one button each. A preset names the fields of the form that it sets. */

const ANY = { noise: "0.1", activation: "Tanh", optimizer: "Adam", lr: "0.01", "batch-size": "32", l1: "0", "weight-decay": "0", seed: "1" };

/** @type {{ name: string, title: string, fields: Record<string, string> }[]} */
const PRESETS = [
  { name: "Solve the spiral", title: "Two wide layers separate two spirals", fields: { ...ANY, dataset: "spirals", noise: "0.04", network: "mlp", hidden: "32, 32", activation: "SiLU", lr: "0.03" } },
  { name: "A line is not enough", title: "Without hidden layers, no line separates the classes of exclusive or", fields: { ...ANY, dataset: "xor", network: "mlp", hidden: "" } },
  { name: "Overfit", title: "A large network learns the noise: the loss of the test set rises", fields: { ...ANY, dataset: "moons", noise: "0.4", network: "mlp", hidden: "256, 256", activation: "ReLU" } },
  { name: "Few weights", title: "L1 makes most weights zero: see them fade in the picture of the network", fields: { ...ANY, dataset: "moons", network: "mlp", hidden: "16, 16", l1: "0.01" } },
  { name: "Read digits", title: "A network with convolutions learns digits", fields: { ...ANY, dataset: "digits", network: "cnn", hidden: "32", activation: "ReLU" } },
];

/**
 * Add the buttons. @param {HTMLElement} list @param {() => void} onChoose  called when the fields have a preset's values
 */
export function showPresets(list, onChoose) {
  for (const { name, title, fields } of PRESETS) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.title = title;
    button.onclick = () => {
      for (const [id, value] of Object.entries(fields)) {
        /** @type {HTMLInputElement | HTMLSelectElement} */ (document.getElementById(id)).value = value;
      }
      onChoose();
    };
    list.append(button);
  }
}
