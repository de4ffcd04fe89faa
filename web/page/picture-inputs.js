/** The inputs of a page that choose pictures: by files, and by pasting. */

const PICTURE = /^image\//;

/** @param {HTMLInputElement} input @param {(files: File[]) => void} take  gets one file or more */
export function listenForPictures(input, take) {
  input.onchange = () => input.files?.length && take([...input.files]);
  input.onclick = () => (input.value = ""); // otherwise, choosing the same files again would not be a change
  addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => PICTURE.test(type));
    if (files.length) take(files);
  });
}

/** The picture among files, or a single file that may be one; null where they are those of a model. @param {Map<string, File>} files  by path */
export function pictureAmong(files) {
  if ([...files.keys()].some((path) => path.endsWith("config.json"))) return null;
  const all = [...files.values()];
  return all.find(({ type }) => PICTURE.test(type)) ?? (all.length === 1 ? all[0] : null);
}
