/** Example texts, each set with a query. @type {{ name: string, query: string, texts: string[] }[]} */
export const EXAMPLES = [
  {
    name: "Sentences",
    query: "a sleeping pet",
    texts: [
      "A cat is asleep on the sofa.",
      "A kitten naps in the sun.",
      "The dog is snoring under the table.",
      "Our bank is closed on Sundays.",
      "You cannot withdraw money at the weekend.",
      "She walked along the bank of the river.",
      "Rain is expected in the afternoon.",
      "Take an umbrella with you today.",
    ],
  },
  {
    name: "Questions to a shop",
    query: "my parcel never came",
    texts: [
      "How long does delivery take?",
      "I have been waiting for my order for three weeks.",
      "Can I send back shoes that do not fit?",
      "What is your refund policy?",
      "I forgot my password.",
      "The page does not let me log in.",
      "Do you have this jacket in blue?",
      "Which sizes are in stock?",
      "Can I pay by bank transfer?",
      "My card was charged twice.",
    ],
  },
  {
    name: "Recipes",
    query: "something sweet for dessert",
    texts: [
      "Roast the aubergines until they are soft, then mash them with tahini and lemon.",
      "Whisk eggs and sugar until pale, fold in the chocolate, and chill for two hours.",
      "Simmer red lentils with ginger, turmeric and coconut milk.",
      "Toss the pasta with garlic, chilli and olive oil.",
      "Bake the apples with butter, cinnamon and brown sugar.",
      "Let the dough rise overnight, then bake it in a hot iron pot.",
    ],
  },
];
